"""What dead processes left behind becomes sessions and stalls of the store."""
