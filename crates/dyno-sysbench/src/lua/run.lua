-- Command lines, reports and the loop over events; returns what Dyno calls.

local shared = ...
local host, op, ask = shared.host, shared.op, shared.ask
local entry = { shared = shared }
local error, pcall, type, tostring, globals, pairs = error, pcall, type, tostring, _G, pairs
local format, concat, sort, floor, abs = string.format, table.concat, table.sort, math.floor, math.abs

-- Command lines -----------------------------------------------------------------------------------------

local kinds = { NULL = 0, BOOL = 1, INT = 2, SIZE = 3, DOUBLE = 4, STRING = 5, LIST = 6, FILE = 7, MAX = 8 }
local cmdline = { argv = host.argv, command = host.command, script_path = host.script_path, PARALLEL_COMMAND = true }
for name, value in pairs(kinds) do
  cmdline["ARG_" .. name] = value
end
sysbench.cmdline = cmdline

local function kind_of(value)
  local kind = type(value)
  if kind == "boolean" then
    return kinds.BOOL
  elseif kind == "number" then
    return kinds.DOUBLE
  elseif kind == "table" then
    return kinds.LIST
  end
  return kinds.STRING
end

local function default_text(value)
  if value == nil then
    return nil
  elseif type(value) == "boolean" then
    return value and "on" or "off"
  elseif type(value) == "table" then
    return concat(value, ",")
  elseif type(value) == "number" and value == floor(value) and abs(value) < 2 ^ 53 then
    return format("%d", value)
  end
  return tostring(value)
end

function entry.options()
  local found = {}
  for name, spec in pairs(cmdline.options or {}) do
    shared.turn()
    if type(name) ~= "string" then
      error("wrong option name: " .. tostring(name), 0)
    end
    if type(spec) ~= "table" then
      error("wrong type of option '" .. name .. "'", 0)
    end
    if spec[1] == nil then
      error("option '" .. name .. "' has no description", 0)
    end
    found[#found + 1] = { name, tostring(spec[1]), spec[3] or kind_of(spec[2]), default_text(spec[2]) }
  end
  sort(found, function(a, b)
    return a[1] < b[1]
  end)
  return cmdline.options ~= nil, found
end

function entry.check_option(name, value)
  local spec = cmdline.options and cmdline.options[name]
  if spec and spec[4] then
    spec[4](value)
  end
end

function entry.export(options, variables)
  sysbench.opt = options
  for name, value in pairs(variables) do
    if type(globals[name]) ~= "function" then
      globals[name] = value
    end
  end
end

local function command_of(name)
  local spec = cmdline.commands and cmdline.commands[name]
  return type(spec) == "table" and spec[1] and spec or nil
end

function cmdline.command_defined(name)
  return command_of(name) ~= nil
end

function cmdline.command_parallel(name)
  local spec = command_of(name)
  return spec ~= nil and spec[2] == cmdline.PARALLEL_COMMAND
end

function cmdline.call_command(name)
  local spec = command_of(name)
  return spec and spec[1]() ~= false
end

function cmdline.print_test_options()
  host.print(host.options_text() .. "\n")
end

entry.command_defined, entry.command_parallel = cmdline.command_defined, cmdline.command_parallel

function entry.has(name)
  return type(globals[name]) == "function"
end

function entry.has_hook(name)
  return type(sysbench.hooks[name]) == "function"
end

-- Reports -----------------------------------------------------------------------------------------------

function sysbench.report_csv(stat)
  local s = stat.time_interval
  print(format(
    "%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
    stat.time_total, stat.threads_running, stat.events / s,
    (stat.reads + stat.writes + stat.other) / s, stat.reads / s, stat.writes / s, stat.other / s,
    stat.latency_pct * 1000, stat.errors / s, stat.reconnects / s
  ))
end

-- Whether a list of JSON objects was begun: each hook has a list of its own.
local is_json_open = false
local latest_hook

function sysbench.report_json(stat)
  local s = stat.time_interval
  host.print(is_json_open and ",\n" or "[\n")
  is_json_open = true
  host.print(format(
    "  {\n    \"time\": %4.0f,\n    \"threads\": %u,\n    \"tps\": %4.2f,\n    \"qps\": {\n"
      .. "      \"total\": %4.2f,\n      \"reads\": %4.2f,\n      \"writes\": %4.2f,\n      \"other\": %4.2f\n    },\n"
      .. "    \"latency\": %4.2f,\n    \"errors\": %4.2f,\n    \"reconnects\": %4.2f\n  }",
    stat.time_total, stat.threads_running, stat.events / s,
    (stat.reads + stat.writes + stat.other) / s, stat.reads / s, stat.writes / s, stat.other / s,
    stat.latency_pct * 1000, stat.errors / s, stat.reconnects / s
  ))
end

-- No report follows.
function entry.end_reports()
  if is_json_open then
    host.print("\n]\n")
    is_json_open = false
  end
end

function sysbench.report_default(stat)
  local s = stat.time_interval
  host.print(format(
    "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f\n",
    stat.time_total, stat.threads_running, stat.events / s,
    (stat.reads + stat.writes + stat.other) / s, stat.reads / s, stat.writes / s, stat.other / s,
    sysbench.opt.percentile, stat.latency_pct * 1000, stat.errors / s, stat.reconnects / s
  ))
end

-- Runs --------------------------------------------------------------------------------------------------

local RESTART_EVENT = sysbench.error.RESTART_EVENT

local function restarts(problem)
  return type(problem) == "table" and problem.errcode == RESTART_EVENT
end

local NEXT, MORE = op.NEXT, op.MORE
local next_event = shared.next_event

function thread_run(tid)
  local more = ask(op.MORE)
  while more do
    local ok, ended
    local goes_on = true
    repeat
      shared.turn()
      ok, ended = pcall(event, tid)
      if not ok then
        if shared.has_to_stop then
          error(ended, 0)
        elseif restarts(ended) then
          if sysbench.hooks.before_restart_event then
            sysbench.hooks.before_restart_event(ended)
          end
          goes_on = ask(op.RESTART)
        elseif ask(op.FAILED, tostring(ended)) then
          goes_on = false
        else
          error(ended, 0)
        end
      end
    until ok or not goes_on
    if not ok then
      more = ask(op.MORE)
    elseif ended then
      ask(op.CANCEL)
      break
    else
      local answer = next_event and next_event() or 0
      if answer == 1 then
        more = true
      elseif answer == 0 then
        more = ask(NEXT)
      else
        more = answer == 3 and ask(MORE)
      end
    end
  end
end

local function text_of(problem)
  if type(problem) == "string" then
    return problem
  end
  return "(not a string)"
end

-- Calls a function; what it returns, or nothing and what went wrong.
local function attempt(name, body, ...)
  local ok, value = pcall(body, ...)
  if ok then
    return true, value
  end
  return false, name, text_of(value)
end

-- The last request of a function that Dyno calls.
local function ended(...)
  return op.END, { ... }
end

function entry.run(tid)
  if thread_init then
    local ok, name, problem = attempt("thread_init", thread_init, tid)
    if not ok then
      return ended(false, name, problem)
    end
  end
  ask(op.READY)
  local ok, name, problem = attempt("thread_run", thread_run, tid)
  if ok and thread_done then
    ok, name, problem = attempt("thread_done", thread_done, tid)
  end
  return ended(ok, name, problem)
end

function entry.body(chunk)
  return ended(attempt("script", chunk))
end

function entry.call(name, ...)
  return ended(attempt(name, globals[name], ...))
end

function entry.command(name)
  return ended(attempt("sysbench.cmdline.call_command", cmdline.call_command, name))
end

function entry.hook(name, stat)
  if name ~= latest_hook then
    entry.end_reports()
  end
  latest_hook = name
  return ended(attempt("sysbench.hooks." .. name, sysbench.hooks[name], stat))
end

return entry
