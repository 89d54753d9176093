"""Files and model files: how they are written, read and checked."""
