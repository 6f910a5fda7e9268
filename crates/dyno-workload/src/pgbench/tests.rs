//! Tests of scripts on the scripted connection.
