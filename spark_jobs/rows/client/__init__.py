"""Wide rows of producers and consumers, declared in clients.yaml or seen in the cluster."""
