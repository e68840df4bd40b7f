import { z } from 'zod';
import { Label } from './labels.ts';

const Name = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,39}$/, 'expected a name of letters, digits and ._-, such as gpu-1');

const Engine = z.strictObject({
  name: Name.optional().meta({
    description: 'How results and messages name the engine. Default: local, or the host of the address.',
  }),
  host: z
    .string()
    .min(1)
    .default('local')
    .meta({
      description:
        "Where it is: ssh://user@host, tcp://host:2376, unix:///path. local: this machine's, as without " +
        '`engines`.',
    }),
  certificates: z
    .string()
    .min(1)
    .optional()
    .meta({
      description:
        'For TLS: a folder with ca.pem, cert.pem and key.pem, relative to this file. Default: as the docker ' +
        'CLI has it, by DOCKER_TLS_VERIFY and DOCKER_CERT_PATH.',
    }),
  labels: z
    .array(Label)
    .optional()
    .meta({
      description:
        'What its machine has that a sandbox may need: gpu. Default: none; for local, the `labels` of this ' +
        'machine.',
    }),
  trials: z.int().min(1).optional().meta({
    description: 'The most trials at a time. Default: as many as its free cores and memory allow.',
  }),
});

/** `engines` of the configuration: addresses, or settings. */
export const EngineList = z
  .array(z.union([z.string().min(1), Engine]))
  .min(1)
  .optional()
  .meta({
    description:
      'The engines that trials run on, several at once: local, ssh://gpu-1. In place of `engine`. A trial runs ' +
      'on one that has what its sandbox `needs`, and the most free cores and memory.',
  });

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

function nameOf(host: string): string {
  const url = URL.canParse(host) ? new URL(host) : undefined;
  return url?.hostname || host;
}

/** What is wrong with the list as a whole; undefined if nothing is. */
export function engineListIssue(settings: EngineSettings): string | undefined {
  const names = configuredEngines(settings).map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return `two engines are called ${twice}: give each a \`name\` of its own`;
  const odd = names.find((name) => !Name.safeParse(name).success);
  return odd === undefined ? undefined : `give the engine ${odd} a \`name\``;
}
