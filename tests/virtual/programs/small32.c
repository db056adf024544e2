/* The smallest 32-bit program: it ends. */
void _start(void)
{
    __asm__ volatile("int $0x80" : : "a"(1), "b"(0));
}
