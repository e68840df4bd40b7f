import { basename } from 'node:path';
import { z } from 'zod';
import { Label } from './quantities.ts';
import { Count, NonEmpty } from './text-source.ts';

const Name = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,39}$/, 'expected a name of letters, digits and ._-, such as gpu-1');

const addresses = 'ssh://user@host, tcp://host:2376 or unix:///path';

/** An address as `engine/connection/connect.ts` takes it. */
const form = /^unix:\/\/.|^(?:ssh|tcp|https?):\/\/[^/]/;

export const EngineAddress = z.string().regex(form, `expected an address: ${addresses}`);

const Where = z.string().regex(new RegExp(`^local$|${form.source}`), `expected local, ${addresses}`);

const Engine = z.strictObject({
  name: Name.optional().describe(
    'How results and messages name the engine. Default: local, or the host or the socket of the address.',
  ),
  host: Where.default('local').describe(
    "Where it is: ssh://user@host, tcp://host:2376, unix:///path. local: this machine's, as without " +
      '`engines`.',
  ),
  certificates: NonEmpty.optional().describe(
    'For TLS: a folder with ca.pem, cert.pem and key.pem, relative to this file. Default: as the docker ' +
      'CLI has it, by DOCKER_TLS_VERIFY and DOCKER_CERT_PATH.',
  ),
  labels: z
    .array(Label)
    .optional()
    .describe(
      'What its machine has that a sandbox may need: big-disk. Default: none; for local, the `labels` of this ' +
        'machine.',
    ),
  trials: Count.optional().describe(
    'The most trials at a time. Default: as many as its free cores and memory allow.',
  ),
});

/** `engines` of the configuration: addresses, or settings. */
export const EngineList = z
  .array(z.union([Where, Engine], { error: 'expected an address or {name, host, labels, …}' }))
  .min(1)
  .optional()
  .describe(
    'The engines that trials run on, several at once: local, ssh://gpu-1. In place of `engine`. A trial runs ' +
      'on one that has what its sandbox `needs`, and the most free cores and memory.',
  );

/** An engine of the configuration. */
export interface ConfiguredEngine {
  name: string;
  /** Undefined for this machine's. */
  host: string | undefined;
  certificates: string | undefined;
  labels: readonly string[];
  trials: number | undefined;
}

interface EngineSettings {
  engines?: z.infer<typeof EngineList>;
  labels: readonly string[];
}

/** The engines that the configuration names in `engines`, with their names. */
export function configuredEngines({ engines = [], labels }: EngineSettings): ConfiguredEngine[] {
  return engines.map((entry) => {
    const settings: z.infer<typeof Engine> = typeof entry === 'string' ? { host: entry } : entry;
    const { host, certificates, trials } = settings;
    const isLocal = host === 'local';
    return {
      name: settings.name ?? nameOf(host),
      host: isLocal ? undefined : host,
      certificates,
      labels: settings.labels ?? (isLocal ? labels : []),
      trials,
    };
  });
}

/** `gpu-1` for `ssh://me@gpu-1`, `podman` for `unix:///run/podman/podman.sock`. */
function nameOf(host: string): string {
  const path = /^unix:\/\/(.+)$/.exec(host)?.[1];
  if (path !== undefined) return basename(path, '.sock');
  const url = URL.canParse(host) ? new URL(host) : undefined;
  return url?.hostname || host;
}

/** What is wrong with the names in the list, and the index of the engine; undefined if nothing is. */
export function engineListIssue(settings: EngineSettings): { index: number; message: string } | undefined {
  const names = configuredEngines(settings).map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    if (!Name.safeParse(name).success)
      return { index, message: `give this engine a \`name\`: its address has none that can be one` };
    if (names.indexOf(name) !== index)
      return {
        index,
        message: `an engine before this one is called ${name} too: give one a \`name\` of its own`,
      };
  }
  return undefined;
}
