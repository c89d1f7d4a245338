//! What is wrong with a document, before anybody knows which operation of which transaction it came from.

use crate::pointer::Pointer;

/// Something wrong at one place of one document; which operation and document is for the caller to add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) pointer: Pointer,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(pointer: Pointer, message: impl Into<String>) -> Self {
        Self { pointer, message: message.into() }
    }
}
