//! A kernel file, opened once and read repeatedly into one buffer.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

/// The rest of a file is not read; none here is as large.
const BYTES_MAX: usize = 4 << 20;

impl Source {
    pub(super) fn new(path: PathBuf) -> Source {
        Source { path, file: None, buffer: Vec::new() }
    }

    /// `None` if it cannot be read, or is not text.
    pub(super) fn text(&mut self) -> Option<&str> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let n_bytes = read_all(self.file.as_ref()?, &mut self.buffer);
        if n_bytes.is_none() {
            // It may be another file next time, as after a driver was reloaded.
            self.file = None;
        }
        std::str::from_utf8(self.buffer.get(..n_bytes?)?).ok()
    }
}

/// For a file read once, such as of a short-lived process. Invalid text is replaced.
pub(super) fn text_once<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> Option<Cow<'a, str>> {
    let n_bytes = read_all(&File::open(path).ok()?, buffer)?;
    let bytes = buffer.get(..n_bytes)?;
    // Checked first, as nearly all is valid.
    Some(std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed))
}

/// From its beginning; the buffer only grows.
fn read_all(file: &File, buffer: &mut Vec<u8>) -> Option<usize> {
    let mut n_bytes = 0;
    loop {
        if buffer.len() - n_bytes < 2048 && buffer.len() < BYTES_MAX {
            buffer.resize((buffer.len() * 2).max(8192), 0);
        }
        let at = u64::try_from(n_bytes).ok()?;
        match file.read_at(&mut buffer[n_bytes..], at) {
            Ok(0) => return Some(n_bytes),
            Ok(more) => n_bytes += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_each_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stat");
        let mut source = Source::new(path.clone());
        assert_eq!(source.text(), None);
        for text in ["short", "", &"long ".repeat(10_000), "short again"] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(source.text(), Some(text));
            assert_eq!(text_once(&path, &mut vec![1, 2, 3]).as_deref(), Some(text));
        }
        std::fs::write(&path, [0xff, 0xfe]).expect("written");
        assert_eq!(source.text(), None);
    }

    #[test]
    fn a_folder_is_no_text() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Source::new(folder.path().to_owned()).text(), None);
    }
}
