"""Brain: curated knowledge, and the evidence that it shares with memory."""
