"""Past one machine: learners on Spark and Dask. Import the module of an engine, such as `regretless.scale.spark`."""
