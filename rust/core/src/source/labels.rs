//! MULAN's label XML.
