"""Laws that everything which merges obeys, shipped so that others can hold their own summaries to them."""
