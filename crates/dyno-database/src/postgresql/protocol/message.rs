//! Errors and notices of the server.

use std::collections::VecDeque;

use dyno_workload::{ErrorClass, ErrorDetails, StatementError};

use super::frame::{ProtocolError, cut_text};

/// How much of a field is kept, in bytes: more than is ever shown. Notices of thousands of connections are kept.
const FIELD_MAX: usize = 16 << 10;

/// Letters and digits of an SQLSTATE.
const CODE_LEN: usize = 5;

const NOTICES_KEPT: usize = 16;

/// An `ErrorResponse` or a `NoticeResponse`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::postgresql) struct ServerMessage {
    severity: String,
    /// SQLSTATE.
    pub(in crate::postgresql) code: String,
    text: String,
    pub(in crate::postgresql) details: ErrorDetails,
}

impl ServerMessage {
    /// Reads the fields; message, detail, hint and (for COPY) where also in one text.
    pub(in crate::postgresql) fn parse(mut body: &[u8]) -> Result<ServerMessage, ProtocolError> {
        let what = "an error message";
        let mut message = ServerMessage::default();
        let mut details = String::new();
        loop {
            let (&kind, rest) = body.split_first().ok_or_else(|| ProtocolError::cut_off(what))?;
            if kind == 0 {
                break;
            }
            body = rest;
            let value = cut_text(&mut body, what)?;
            let value = String::from_utf8_lossy(&value[..value.len().min(FIELD_MAX)]);
            let fields = &mut message.details;
            match kind {
                b'M' => fields.message = value.to_string(),
                b'D' => fields.detail = Some(value.to_string()),
                b'H' => fields.hint = Some(value.to_string()),
                b'W' => fields.context = Some(value.to_string()),
                b'P' => fields.position = value.parse().ok(),
                _ => {}
            }
            match kind {
                b'S' if message.severity.is_empty() => message.severity = value.into_owned(),
                // Not translated, so better than `S`; servers before 9.6 do not send it.
                b'V' => message.severity = value.into_owned(),
                b'C' => message.code = value.into_owned(),
                b'M' => message.text = value.into_owned(),
                // Each comes once, and not without end.
                _ if details.len() > FIELD_MAX => {}
                b'D' => details.push_str(&format!("; detail: {value}")),
                b'H' => details.push_str(&format!("; hint: {value}")),
                b'W' if value.starts_with("COPY ") => {
                    details.push_str(&format!("; in {}", value.lines().next().unwrap_or_default()));
                }
                _ => {}
            }
        }
        message.text.push_str(&details);
        message.code.retain(|c| c.is_ascii_alphanumeric());
        message.code.truncate(CODE_LEN);
        message.severity.retain(char::is_alphanumeric);
        message.details.severity.clone_from(&message.severity);
        Ok(message)
    }

    /// Whether the server ends the connection with it.
    pub(in crate::postgresql) fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    fn class(&self) -> ErrorClass {
        if self.is_fatal() {
            return ErrorClass::Disconnected;
        }
        match self.code.as_str() {
            "40P01" => ErrorClass::Deadlock,
            "40001" => ErrorClass::Serialization,
            "55P03" => ErrorClass::LockTimeout,
            "23505" => ErrorClass::DuplicateKey,
            // `query_canceled`: by a time limit of the server, or at a user's request.
            "57014" if self.text.contains("lock timeout") => ErrorClass::LockTimeout,
            "57014" if self.text.contains("statement timeout") => ErrorClass::TimedOut,
            "57P01" | "57P02" | "57P03" => ErrorClass::Disconnected,
            // `protocol_violation`, such as a wrong number of values: the connection stays, if it is not fatal.
            "08P01" => ErrorClass::Refused,
            code if code.starts_with("08") => ErrorClass::Disconnected,
            _ => ErrorClass::Refused,
        }
    }

    pub(in crate::postgresql) fn to_error(&self) -> StatementError {
        let error = StatementError::new(self.class(), self.code.as_str(), self.text.as_str());
        StatementError { details: Some(Box::new(self.details.clone())), ..error }
    }

    pub(in crate::postgresql) fn to_line(&self) -> String {
        format!("{}: {} ({})", self.severity, self.text, self.code)
    }
}

/// The last notices of a connection, oldest first.
#[derive(Debug, Default)]
pub(in crate::postgresql) struct Notices {
    kept: VecDeque<ServerMessage>,
    n_dropped: u64,
}

impl Notices {
    /// Keeps the notice in this `NoticeResponse`; the oldest is dropped if there are too many.
    pub(super) fn keep(&mut self, body: &[u8]) -> Result<(), ProtocolError> {
        let message = ServerMessage::parse(body)?;
        if self.kept.len() == NOTICES_KEPT {
            self.kept.pop_front();
            self.n_dropped += 1;
        }
        self.kept.push_back(message);
        Ok(())
    }

    /// Takes those that were kept, and how many older ones were not.
    pub(in crate::postgresql) fn take(&mut self) -> (Vec<ServerMessage>, u64) {
        (self.kept.drain(..).collect(), std::mem::take(&mut self.n_dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_kept_of_a_long_message() {
        let long = "x".repeat(1 << 20);
        let fields = "SCVMDHW".chars().map(|kind| format!("{kind}{long}\0"));
        let body = fields.collect::<String>() + &format!("D{long}\0").repeat(20) + "\0";
        let message = ServerMessage::parse(body.as_bytes()).expect("it is whole");
        let error = message.to_error();
        assert_eq!(error.code, "xxxxx");
        assert!(error.to_string().len() < 5 * FIELD_MAX, "{}", error.to_string().len());
        let ErrorDetails { severity, message: text, detail, hint, context, .. } = message.details;
        let optional = [detail, hint, context].map(Option::unwrap_or_default);
        for field in [severity, text, message.severity, message.text].iter().chain(&optional) {
            assert!(field.len() < 5 * FIELD_MAX, "{}", field.len());
        }
    }
}
