//! Programs that run in containers, from images that the user's own container engine has.
//!
//! Main types: [`Engine`], Podman or Docker, and [`Image`]. The keeper starts a program of an image by the engine's
//! `run`, without privileges and without a network; what runs in the container is a process of this machine
//! like any other. Containers carry a label with random digits that are noted in the owner file of the folder they
//! work in: no others are ever removed.

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
    /// Its path, on this machine or in the image.
    pub path: &'a Path,
    /// The image that it is in; none for a program of this machine.
    pub image: Option<&'a Image>,
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for Program<'a> {
    fn from(path: &'a P) -> Program<'a> {
        Program { path: path.as_ref(), image: None }
    }
}
