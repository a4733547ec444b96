"""What notes, memory and brain share: keyword terms, ranking, and text made safe for a terminal."""
