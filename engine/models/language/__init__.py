"""Language models: one interface, one file a provider. What they say is data, checked before use."""
