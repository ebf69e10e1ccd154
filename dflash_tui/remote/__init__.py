"""WHAT we do on a machine, written once over any Host: deploy, launch, stop, resume, follow."""
