//! Opens connections on a helper thread, so that a reconnect does not stop the other clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dyno_workload::{ConnectError, Connection, Connector};
use rustix::event::{EventfdFlags, eventfd};

use crate::reactor::Bell;

type Opened = Result<Box<dyn Connection>, ConnectError>;

/// One after the other; the thread starts when it is first needed.
pub(crate) struct Opener {
    connector: Connector,
    bell: Bell,
    helper: Option<Helper>,
    opened: BTreeMap<u32, Opened>,
    n_asked: usize,
}

struct Helper {
    orders: Sender<u32>,
    results: Receiver<(u32, Opened)>,
}

impl Opener {
    pub(crate) fn new(connector: Connector) -> rustix::io::Result<Opener> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Opener { connector, bell, helper: None, opened: BTreeMap::new(), n_asked: 0 })
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.n_asked > 0
    }

    pub(crate) fn open(&mut self, slot: u32) {
        self.n_asked += 1;
        if self.helper.is_none() {
            self.helper = start(&self.connector, &self.bell);
        }
        let is_sent = self.helper.as_ref().is_some_and(|helper| helper.orders.send(slot).is_ok());
        if !is_sent {
            // A panic ended the thread; the next call starts another.
            self.helper = None;
            self.opened.insert(slot, Err(no_helper()));
        }
    }

    pub(crate) fn take(&mut self, slot: u32) -> Option<Opened> {
        let result = self.opened.remove(&slot)?;
        self.n_asked -= 1;
        Some(result)
    }

    pub(crate) fn collect(&mut self, woken: &mut Vec<u32>) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.bell, &mut count);
        let Some(helper) = &self.helper else { return };
        for (slot, result) in helper.results.try_iter() {
            self.opened.insert(slot, result);
            woken.push(slot);
        }
    }
}

fn no_helper() -> ConnectError {
    ConnectError {
        address: "the server".to_owned(),
        reason: "no thread could be started for it; raise the thread limit".to_owned(),
        details: None,
    }
}

fn start(connector: &Connector, bell: &Bell) -> Option<Helper> {
    let (orders, ordered) = channel::<u32>();
    let (done, results) = channel();
    let (connector, bell) = (Arc::clone(connector), Arc::clone(bell));
    let work = move || {
        for slot in ordered {
            if done.send((slot, connector())).is_err() {
                return;
            }
            let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
        }
    };
    thread::Builder::new().name("dyno-reconnect".to_owned()).spawn(work).ok()?;
    Some(Helper { orders, results })
}
