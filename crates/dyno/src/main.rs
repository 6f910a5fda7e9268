//! The program `dyno`. All of it is in the library, where fuzz targets reach it, too.

fn main() -> std::process::ExitCode {
    dyno::main()
}
