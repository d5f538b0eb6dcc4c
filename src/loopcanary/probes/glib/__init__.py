"""GLib's main loops, and the windows of GTK."""
