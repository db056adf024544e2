/* What the page uses of @xterm/addon-fit; for the type check only. */
export const FitAddon: any;
