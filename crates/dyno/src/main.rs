//! The program `dyno`. All code is in the library, where fuzz targets reach it.

fn main() -> std::process::ExitCode {
    dyno::main()
}
