//! What a script asks for, and what it is answered.

use mlua::{IntoLuaMulti, Lua, MultiValue, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParamKind {
    #[default]
    Integer,
    Real,
    Text,
}

/// A value for a statement; texts are in [`crate::State::bytes`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    Null,
    Number(f64),
    /// A range of the bytes.
    Text(usize, usize),
}

/// What a script asks for. Texts and values are in the [`crate::State`] until it is resumed.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A connection; answered with its number, or with [`Reply::No`].
    Connect,
    Disconnect(usize),
    Reconnect(usize),
    /// To execute [`crate::State::sql`].
    Query(usize),
    /// To prepare [`crate::State::sql`]; answered with the statement's number.
    Prepare(usize),
    Bind(usize, usize, Vec<ParamKind>),
    /// To execute a prepared statement with [`crate::State::values`].
    Execute(usize, usize),
    /// What the statement came to that was sent without leaving the script.
    Await,
    Close(usize, usize),
    /// A row of the latest result of a connection.
    Fetch(usize, usize),
    /// Its preparations are over: it waits for the beginning.
    Ready,
    /// The next event; answered with whether there is one.
    More,
    /// Its event has ended well.
    Stop,
    /// Its event has ended well, and it waits for the next one.
    Next,
    /// Its event failed in a way that it ignores, and begins again; answered with whether it may.
    Restart,
    /// Its event failed: with what message. Answered with whether to go on with the next event.
    Failed(String),
    /// The database refused a statement: its code and message. [`Request::Failed`] may follow.
    NoteError(String, String),
    /// Its event ended, is not counted, and was the last one.
    Cancel,
    Sleep(f64),
    Exit(i32),
    /// It is over. The value is whether the function returned `false`.
    Ended(bool),
    /// It is over by an error: of which function, and what went wrong.
    Broken(String, String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done,
    Yes,
    No,
    /// The number of a connection or of a statement.
    Number(usize),
    /// A statement was executed that returned no rows.
    Executed,
    /// A statement has returned so many rows of so many columns.
    Rows(u64, usize),
    Row(Vec<Option<Vec<u8>>>),
    Refused {
        /// The number of the error, or 0.
        number: u32,
        state: String,
        message: String,
        /// Whether the options ignore it.
        is_ignored: bool,
    },
    Unprepared {
        /// The number of the error, or 0.
        number: u32,
        state: String,
        message: String,
    },
}

impl IntoLuaMulti for Reply {
    fn into_lua_multi(self, lua: &Lua) -> mlua::Result<MultiValue> {
        match self {
            Reply::Done => Ok(MultiValue::new()),
            Reply::Yes => true.into_lua_multi(lua),
            Reply::No => false.into_lua_multi(lua),
            Reply::Number(number) => (number as f64).into_lua_multi(lua),
            Reply::Executed => (-1.0).into_lua_multi(lua),
            Reply::Rows(rows, columns) => (rows as f64, columns as f64).into_lua_multi(lua),
            Reply::Row(values) => {
                let text = |bytes: Vec<u8>| lua.create_string(&bytes).map(Value::String);
                values.into_iter().map(|bytes| bytes.map_or(Ok(Value::Nil), text)).collect()
            }
            Reply::Refused { number, state, message, is_ignored } => {
                (-2.0, number, state, message, is_ignored).into_lua_multi(lua)
            }
            Reply::Unprepared { number, state, message } => {
                (false, number, state, message).into_lua_multi(lua)
            }
        }
    }
}
