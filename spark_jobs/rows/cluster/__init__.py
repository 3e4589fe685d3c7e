"""Wide rows of the whole cluster: quorum, drift of settings, access, and its series of snapshots."""
