"""The drivers: one file each, one line each in `orchestrator.lab.driver.DRIVERS`."""
