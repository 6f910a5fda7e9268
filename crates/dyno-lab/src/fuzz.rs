//! The fuzz target of this crate.

pub use crate::hosts::fuzz::agent_messages;

#[cfg(test)]
#[path = "../../../fuzz/mutations.rs"]
mod mutations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_agents_are_read_or_refused() {
        mutations::run("agent_messages", 3000, agent_messages);
    }
}
