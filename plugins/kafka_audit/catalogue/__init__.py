"""What is asked of a cluster: the controls, their loading, and which SQL and which columns a rule may use. Nothing here runs a rule."""
