import { z } from 'zod';

/** What an environment starts with its container, as an engine alone would. */
export const StartUp = z.strictObject({
  entrypoint: z.array(z.string()).optional().meta({
    description: "In place of the image's own entrypoint and command.",
  }),
  command: z.array(z.string()).optional().meta({ description: "In place of the image's own command." }),
});
export type StartUp = z.infer<typeof StartUp>;

/** What an image starts. */
interface ImageProgram {
  entrypoint: readonly string[];
  command: readonly string[];
}

/**
 * The program of an environment, by the rules of engines. Undefined if there is none, or if it only keeps its
 * container alive, which Offsite's own program does.
 */
export function startUpOf(startUp: StartUp | undefined, image: ImageProgram): readonly string[] | undefined {
  if (!startUp) return undefined;
  const { entrypoint = image.entrypoint, command = startUp.entrypoint ? [] : image.command } = startUp;
  const argv = [...withoutStarter(entrypoint), ...command];
  return argv.length === 0 || isIdle(argv) ? undefined : argv;
}

/** Whether a command only keeps its container alive: it sleeps, or waits for what a person types. */
export function isIdle(command: readonly string[]): boolean {
  const text = command.join(' ').trim();
  return (
    /^((\/bin\/)?(ba)?sh -c )?(exec )?(sleep infinity|tail -f \/dev\/null)$/.test(text) ||
    /^(\/(usr\/)?(local\/)?bin\/)?((ba|da|z)?sh|python3?|node|irb)( -[il]+)?$/.test(text)
  );
}

/** Without an init program, which only starts another program and reaps orphaned processes. */
function withoutStarter(entrypoint: readonly string[]): readonly string[] {
  const [first = ''] = entrypoint;
  if (!/(^|\/)(tini|dumb-init|catatonit)$/.test(first)) return entrypoint;
  const next = entrypoint.findIndex((word, index) => index > 0 && !word.startsWith('-'));
  return next === -1 ? [] : entrypoint.slice(next);
}
