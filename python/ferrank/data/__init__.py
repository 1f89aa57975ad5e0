"""Everything that can be ranked: files, frames, arrays, label hierarchies, and the roles of columns."""
