"""Any program: started on its node; it may account for its own messages."""
