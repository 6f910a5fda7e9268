//! Programs in containers, from images of the user's container engine, started by the engine's
//! `run` without privileges or network; they are processes of this machine like any other. Only
//! containers with the random label noted in a folder's owner file are ever removed.

mod engine;
mod image;
mod order;

pub(crate) use engine::ContainersNote;
pub use engine::Engine;
pub use image::{Image, LocalImage};
pub(crate) use order::ContainerOrder;

use std::path::Path;

#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// On this machine or in the image.
    pub path: &'a Path,
    /// `None` for a program of this machine.
    pub image: Option<&'a Image>,
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for Program<'a> {
    fn from(path: &'a P) -> Program<'a> {
        Program { path: path.as_ref(), image: None }
    }
}
