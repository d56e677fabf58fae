"""Lightning's callbacks at the mount points of hookloop."""
