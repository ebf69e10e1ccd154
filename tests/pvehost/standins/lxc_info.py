"""Stands in for `lxc-info -n VMID -s -H`: what the kernel does with a container, also whether it is frozen."""

import os
import sys

folder = "/run/pvehost/lxc/" + sys.argv[sys.argv.index("-n") + 1]
if os.path.exists(folder + "/frozen"):
    print("FROZEN")
else:
    print("RUNNING" if os.path.exists(folder + "/init.pid") else "STOPPED")
