//! TLS by rustls, which does no input or output itself: one object serves blocking and non-blocking
//! sockets. It allocates for each record, which is part of TLS's measured cost.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::ReadBuffer;
use crate::TlsMode;

/// Enough for a whole record that has arrived: 16 KiB at 4 KiB each. A server that sends it byte by byte takes more.
pub(super) const RECORD_READS: usize = 5;

pub(super) struct TlsStream {
    session: ClientConnection,
    // Decrypted bytes that are still inside the session.
    n_buffered: usize,
}

impl TlsStream {
    /// Finishes the handshake on a blocking socket; none if `mode` is off.
    pub(super) fn handshake(
        mode: &TlsMode,
        host: &str,
        socket: &mut (impl Read + Write),
    ) -> io::Result<Option<TlsStream>> {
        TlsStream::handshake_trusting(mode, host, socket, system_roots)
    }

    fn handshake_trusting(
        mode: &TlsMode,
        host: &str,
        socket: &mut (impl Read + Write),
        system_roots: impl FnOnce() -> io::Result<Arc<RootCertStore>>,
    ) -> io::Result<Option<TlsStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match mode {
            TlsMode::Off => return Ok(None),
            TlsMode::Encrypt => Arc::new(AnyCertificate { provider: Arc::clone(&provider) }),
            TlsMode::Verify { roots } => {
                let roots = match roots {
                    Some(path) => Arc::new(read_roots(path)?),
                    None => system_roots()?,
                };
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                    .build()
                    .map_err(io::Error::other)?
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let mut session = ClientConnection::new(Arc::new(config), server_name(mode, host)?)
            .map_err(io::Error::other)?;
        while session.is_handshaking() || session.wants_write() {
            session.complete_io(socket).map_err(as_io_error)?;
        }
        Ok(Some(TlsStream { session, n_buffered: 0 }))
    }

    pub(super) fn server_certificate(&self) -> Option<&[u8]> {
        self.session.peer_certificates()?.first().map(|certificate| certificate.as_ref())
    }

    pub(super) fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    pub(super) fn has_buffered(&self) -> bool {
        self.n_buffered > 0
    }

    /// Appends all that can be decrypted. If that is nothing, reads again, up to `reads_most` times; then `WouldBlock`.
    pub(super) fn read_some(
        &mut self,
        socket: &mut (impl Read + Write),
        buffer: &mut ReadBuffer,
        reads_most: usize,
    ) -> io::Result<usize> {
        let mut n_reads = 0;
        while self.n_buffered == 0 {
            self.decrypt(socket)?;
            n_reads += 1;
            if self.n_buffered == 0 {
                // Returns the end of the stream, and whether it was a proper one.
                match self.session.reader().read(buffer.room(1)) {
                    Err(error)
                        if error.kind() == io::ErrorKind::WouldBlock && n_reads < reads_most => {}
                    other => return other,
                }
            }
        }
        let mut n_total = 0;
        while self.n_buffered > 0 {
            let n_read = self.session.reader().read(buffer.room(self.n_buffered))?;
            buffer.filled(n_read);
            n_total += n_read;
            self.n_buffered = self.n_buffered.saturating_sub(n_read);
        }
        Ok(n_total)
    }

    /// Reads encrypted bytes once, and decrypts what is complete.
    fn decrypt(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        self.session.read_tls(socket)?;
        let state = self.session.process_new_packets().map_err(|error| {
            // An alert informs the peer of the reason; whether it arrives does not matter.
            let _ = self.session.write_tls(socket);
            io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
        })?;
        self.n_buffered = state.plaintext_bytes_to_read();
        Ok(())
    }

    /// Encrypts what the session has room for, and writes as much as the socket takes.
    pub(super) fn write_some(
        &mut self,
        socket: &mut (impl Read + Write),
        bytes: &[u8],
    ) -> io::Result<usize> {
        let n_taken = self.session.writer().write(bytes)?;
        while self.session.wants_write() {
            match self.session.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && n_taken > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(n_taken)
    }
}

/// A handshake error in words that fit after "cannot connect to …:".
fn as_io_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            io::Error::new(error.kind(), "the server did not finish the TLS handshake")
        }
        kind => io::Error::new(kind, format!("the TLS handshake failed: {error}")),
    }
}

/// If nothing is verified, `localhost` replaces a name that TLS cannot carry (a Unix socket's).
fn server_name(mode: &TlsMode, host: &str) -> io::Result<ServerName<'static>> {
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        Err(_) if *mode == TlsMode::Encrypt => {
            Ok(ServerName::try_from("localhost").expect("`localhost` is a valid name"))
        }
        Err(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{host}` is not a host name that a certificate can be verified for"),
        )),
    }
}

/// Trusted root certificates: Debian and Arch, Fedora and RHEL, SUSE, Alpine and the BSDs.
const SYSTEM_ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The root certificates that the system trusts, read once.
fn system_roots() -> io::Result<Arc<RootCertStore>> {
    static ROOTS: OnceLock<Option<Arc<RootCertStore>>> = OnceLock::new();
    let read = || read_first(&SYSTEM_ROOTS.map(Path::new)).map(Arc::new);
    ROOTS.get_or_init(read).clone().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "no system root certificates were found (in {}); install the package \
                 `ca-certificates`, or name a file with `tls_roots=FILE`",
                SYSTEM_ROOTS.join(", ")
            ),
        )
    })
}

/// The certificates of the first bundle that has any.
fn read_first(paths: &[&Path]) -> Option<RootCertStore> {
    paths.iter().find_map(|path| read_bundle(path))
}

/// Unusable certificates of the system's bundle are skipped: no user asked for a particular one.
fn read_bundle(path: &Path) -> Option<RootCertStore> {
    let certificates = CertificateDer::pem_file_iter(path).ok()?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.filter_map(Result::ok));
    (!roots.is_empty()).then_some(roots)
}

/// In bytes; a system's whole collection has a quarter of one MiB.
const ROOTS_MOST: u64 = 16 << 20;

fn read_roots(path: &Path) -> io::Result<RootCertStore> {
    let refuse = |reason: String| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("cannot read root certificates from {}: {reason}", path.display()),
        )
    };
    let mut roots = RootCertStore::empty();
    let text =
        dyno_units::read_unplanted(path, ROOTS_MOST).map_err(|error| refuse(error.to_string()))?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("there is no certificate (PEM) in it".to_owned()));
    }
    Ok(roots)
}

/// Accepts any certificate, but only from a peer that proves possession of its key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _stapled: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::super::tests::{echo_server, fixture, server_key};
    use super::*;
    use crate::Address;

    /// A handshake with a server whose certificate a made authority has signed for `localhost`, by
    /// roots of the system that are in one of these files.
    #[track_caller]
    fn check(bundles: &[&Path], host: &str, expected: Result<(), &str>) {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = echo_server(folder.path(), server_key());
        let Address::Unix(path) = endpoint.address else { panic!("it listens on a socket") };
        let mut socket = UnixStream::connect(path).unwrap();
        let mode = TlsMode::Verify { roots: None };
        let roots = || read_first(bundles).map(Arc::new).ok_or_else(|| io::Error::other("none"));
        let opened = TlsStream::handshake_trusting(&mode, host, &mut socket, roots);
        let opened = opened.map(|stream| assert!(stream.is_some(), "it is encrypted"));
        match (opened.map_err(|error| error.to_string()), expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (opened, expected) => panic!("{opened:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn without_a_file_the_roots_of_the_system_are_trusted() {
        let (good, other) = (fixture("tls-root.pem"), fixture("tls-other-root.pem"));
        let folder = tempfile::tempdir().unwrap();
        let (missing, empty) = (folder.path().join("missing"), folder.path().join("empty"));
        std::fs::write(&empty, "").unwrap();
        // A real bundle has many certificates, and may have some that cannot be used.
        let bundle = folder.path().join("bundle");
        let unusable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned();
        let texts = [&other, &good].map(|path| std::fs::read_to_string(path).unwrap());
        std::fs::write(&bundle, [unusable, texts.concat()].concat()).unwrap();
        check(&[&good], "localhost", Ok(()));
        check(&[&bundle], "localhost", Ok(()));
        check(&[&missing, &empty, &good], "localhost", Ok(()));
        check(&[&good], "any.example", Err("not valid for name"));
        check(&[&other], "localhost", Err("UnknownIssuer"));
        // The first bundle counts: others are of other systems.
        check(&[&other, &good], "localhost", Err("UnknownIssuer"));
        check(&[&missing, &empty], "localhost", Err("none"));
    }

    /// A record of which one byte comes at a time.
    #[derive(Default)]
    struct Dripping {
        n_reads: usize,
    }

    impl Read for Dripping {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            room[0] = [0x17, 3, 3, 0x40].get(self.n_reads).copied().unwrap_or(0);
            self.n_reads += 1;
            Ok(1)
        }
    }

    impl Write for Dripping {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Otherwise nobody would look at the clock.
    #[test]
    fn a_record_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = echo_server(folder.path(), server_key());
        let Address::Unix(path) = endpoint.address else { panic!("it listens on a socket") };
        let mut socket = UnixStream::connect(path).unwrap();
        let opened = TlsStream::handshake(&TlsMode::Encrypt, "localhost", &mut socket);
        let mut stream = opened.unwrap().expect("it is encrypted");
        let mut dripping = Dripping::default();
        let read = stream.read_some(&mut dripping, &mut ReadBuffer::new(), RECORD_READS);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(dripping.n_reads, RECORD_READS);
    }

    #[test]
    fn an_authority_that_this_machine_does_not_know_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = echo_server(folder.path(), server_key());
        let mut transport = super::super::Transport::open(&endpoint).unwrap();
        let mode = TlsMode::Verify { roots: None };
        let error = transport.start_tls(&mode, "localhost").unwrap_err().to_string();
        let refusals = ["UnknownIssuer", "no system root certificates were found"];
        assert!(refusals.iter().any(|refusal| error.contains(refusal)), "{error}");
    }
}
