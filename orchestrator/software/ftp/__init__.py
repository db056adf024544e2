"""Files moved by FTP: a real server, a real client, every transfer accounted for."""
