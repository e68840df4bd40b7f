import type { CommandTree } from './command-tree.ts';

/**
 * The trees of all commands that people type. The bundler writes this file (`scripts/bundle-program.ts`), so
 * that help and completion need not read the code of every command. In a checkout they do.
 */
export const bundledTrees: readonly CommandTree[] | undefined = undefined;
