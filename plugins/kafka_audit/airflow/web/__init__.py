"""The web pages of the Airflow UI: each module adds the routes of one kind of page; only people who may read a cluster's runs see it."""
