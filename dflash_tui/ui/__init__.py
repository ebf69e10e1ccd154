"""The screens. The only place that imports textual; nothing but the command line imports it."""
