/* What the page uses of @xterm/xterm; for the type check only. */
export const Terminal: any;
