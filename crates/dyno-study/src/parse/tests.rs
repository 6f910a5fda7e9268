//! What the parser reads, and what it says about what it cannot read.

mod accepted;
mod faults;
mod members;
mod own;
mod paths;
mod properties;
mod refused;
mod relations;
mod watching;
