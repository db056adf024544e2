"""Plans WireGuard tunnels: a device at each end, by the kernel or by wireguard-go, with keys from the lab's
seed.
"""
