//! Pipelines: statements sent together and answered one after the other, in one round trip. A
//! workload must know what may go in: no statement needs another's reply, and what follows a failed
//! one must be harmless. PostgreSQL skips it; MariaDB and MySQL execute it.

use std::task::Poll;

use super::Session;
use crate::connection::StatementClass;
use crate::{ErrorClass, Reply, StatementError, Value};

impl Session {
    /// For [`Session::send_pipeline`]. All earlier replies must have been taken.
    pub fn begin_pipeline(&mut self) {
        debug_assert!(self.asked.is_empty(), "replies were not taken");
        self.has_pipelines = self.connection.begin_pipeline();
    }

    pub fn push_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        if self.has_pipelines {
            self.connection.send_execute(statement, values);
        }
        self.asked.push_back(self.classes[statement]);
    }

    pub fn push_text(&mut self, sql: &str, class: StatementClass) {
        if self.has_pipelines {
            self.connection.send_text(sql);
        }
        self.asked.push_back(class);
    }

    pub fn send_pipeline(&mut self) {
        self.connection.send_pipeline();
        self.is_first_reply = true;
    }

    /// After an error no further replies are returned: those that the server sends are counted and
    /// dropped. Fails with the statement's error, or if the product has no pipelines.
    pub async fn next_reply(&mut self) -> Result<Reply, StatementError> {
        let Some(class) = self.asked.pop_front() else {
            return Err(refused("more replies were asked for than statements sent"));
        };
        if !self.has_pipelines {
            self.asked.clear();
            return Err(refused("this product takes one statement at a time"));
        }
        let result = self.reply_to(class).await;
        if let Err(error) = &result {
            match error.class.loses_connection() {
                true => self.asked.clear(),
                false => self.drop_replies().await,
            }
        }
        result
    }

    /// If the connection is lost meanwhile, the next statement fails.
    pub(crate) async fn drop_replies(&mut self) {
        while self.connection.n_awaited() > 0
            && let Some(class) = self.asked.pop_front()
        {
            let result = self.reply_to(class).await;
            if result.is_err_and(|error| error.class.loses_connection()) {
                break;
            }
        }
        self.asked.clear();
    }

    /// The first reply is waited for; one of the others may have arrived together with it.
    async fn reply_to(&mut self, class: StatementClass) -> Result<Reply, StatementError> {
        if !std::mem::take(&mut self.is_first_reply)
            && let Poll::Ready(result) = self.connection.poll_received()
        {
            self.count(class, &result);
            return result;
        }
        self.answer(class).await
    }
}

#[cold]
fn refused(message: &str) -> StatementError {
    StatementError::new(ErrorClass::Refused, "pipeline", message)
}
