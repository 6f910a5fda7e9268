-- Each thread prepares without an end.
local function prepare()
   io.stderr:write("begun\n")
   while true do end
end

sysbench.cmdline.commands = {
   prepare = { prepare, sysbench.cmdline.PARALLEL_COMMAND }
}
