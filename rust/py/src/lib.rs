//! Python bindings of ferrank.
