import { z } from 'zod';
import { inputError } from '../../base/offsite-error.ts';
import { yamlFiles } from '../../bounds/suite.ts';
import { printPath } from '../../contract/errors.ts';
import type { Path } from '../../suite/yaml-file.ts';
import { bytesOf } from '../document.ts';

/** The keys of a compose file that Offsite reads. Keys that are not here are obstacles. */

const Scalar = z.union([z.string(), z.number(), z.boolean()], { error: 'expected a text' }).transform(String);
const Texts = z.array(Scalar);

/** One of several forms, of which the schema makes one. */
function oneOf<const Forms extends readonly z.ZodType[]>(expected: string, ...forms: Forms) {
  return z.union(forms, { error: `expected ${expected}` });
}

/** A list of texts as a map. */
function mapFrom<Value>(
  entryOf: (text: string) => [key: string, value: Value],
  texts: z.ZodType<string[]> = z.array(z.string()),
) {
  return texts.transform((each) => Object.fromEntries(each.map(entryOf)));
}

/** A text for a shell, or a program with its arguments. */
const Command = oneOf('a text, or a list of texts', z.string(), Texts);

const Words = Command.transform((given) => (typeof given === 'string' ? splitWords(given) : given));

/** `KEY: value`, or `- KEY=value`. A key without a value has the value of the host's variable. */
const Variables = oneOf(
  'a map, or a list of KEY=value',
  z.record(z.string(), Scalar.nullable()),
  mapFrom<string | null>((line) => {
    const [key = '', ...value] = line.split('=');
    return [key, value.length === 0 ? null : value.join('=')];
  }, Texts),
);

/**
 * The words of a command, as Compose splits them: at spaces, with quotes and backslashes as in a shell. No
 * shell runs the command, so no other character has a special meaning.
 */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    const next = text.charAt(at + 1);
    if (character === '\\' && quote !== "'" && (quote === '' || /["\\]/.test(next))) {
      word = `${word ?? ''}${next}`;
      at += 1;
    } else if (quote !== '') {
      if (character === quote) quote = '';
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = `${word ?? ''}${character}`;
  }
  if (word !== undefined) words.push(word);
  return words;
}

const timeUnits = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 0.001 } as const;

/** `1m30s`, read as milliseconds. */
const Duration = z
  .string()
  .regex(/^(\d{1,9}(\.\d{1,9})?(h|ms|us|m|s)){1,6}$/, 'expected a duration such as 30s or 1m30s')
  .transform((text) =>
    [...text.matchAll(/([\d.]+)(h|ms|us|m|s)/g)].reduce(
      (sum, [, amount, unit]) => sum + Number(amount) * timeUnits[unit as keyof typeof timeUnits],
      0,
    ),
  );

/** `512m`, `2gb`, or a number of bytes. */
const size = 'expected a size such as 512m or 2g, or a number of bytes';
const Size = z
  .union([z.number().positive(), z.string().regex(/^\d{1,15}(\.\d+)?\s*[bkmg]?b?$/i, size)], { error: size })
  .transform((size) => (typeof size === 'number' ? size : bytesOf(size)));

const cores = 'expected a number of cores';
const Cpus = z
  .union([z.number().positive(), z.string().regex(/^\d{1,6}(\.\d+)?$/, cores)], { error: cores })
  .transform(Number);

const Healthcheck = z.object({
  test: Command.optional(),
  interval: Duration.default(30_000),
  timeout: Duration.default(30_000),
  start_period: Duration.default(0),
  start_interval: Duration.default(5000),
  retries: z.coerce.number().int().min(0).default(3),
  disable: z.boolean().optional(),
});

const untilOf = {
  service_started: 'started',
  service_healthy: 'healthy',
  service_completed_successfully: 'ended',
} as const;

const Dependency = z.object({
  condition: z
    .enum(['service_started', 'service_healthy', 'service_completed_successfully'])
    .default('service_started'),
  required: z.boolean().optional(),
  restart: z.boolean().optional(),
});

const DependsOn = oneOf(
  'a list of services, or a map with their conditions',
  mapFrom((name) => [name, untilOf.service_started]),
  z.record(
    z.string(),
    Dependency.transform(({ condition }) => untilOf[condition]),
  ),
);

/** Stands for a folder of the host that the format's own program mounts for logs. */
export const hostLogs = 'offsite:logs';

/** `source:target`, with settings of the mount after it, or only `target`. */
const ShortVolume = z.string().transform((volume) => {
  const isLogs = volume.startsWith(`${hostLogs}:`);
  const [, source, rest = volume] = (isLogs ? /^([^:]+:[^:]+):(.*)$/ : /^([^:]+):(.*)$/).exec(volume) ?? [];
  const [target = ''] = rest.split(':');
  const type = isLogs || /^[./~]/.test(source ?? '') ? ('bind' as const) : ('volume' as const);
  return { type, source, target };
});

const Volume = oneOf(
  'source:target, or a map with type, source and target',
  ShortVolume,
  z.object({
    type: z.enum(['bind', 'volume', 'tmpfs']),
    source: z.string().optional(),
    target: z.string(),
    read_only: z.boolean().optional(),
  }),
);

const ConfigUse = oneOf(
  'the name of a config, or a map with source and target',
  z.string().transform((source) => ({ source, target: undefined })),
  z.object({ source: z.string(), target: z.string().optional() }),
);

const PathOfFile = z.string().transform((path) => ({ path, required: true }));
const EnvFile = z.object({ path: z.string(), required: z.boolean().default(true) });
const EnvFiles = oneOf(
  'a path, or a list of paths',
  PathOfFile.transform((file) => [file]),
  z.array(z.union([PathOfFile, EnvFile])),
);

/** `name: address`, or `- name:address`, or `- name=address`. */
const ExtraHosts = oneOf(
  'a map, or a list of name=address',
  z.record(z.string(), z.string()),
  mapFrom((line) => {
    const [, name = line, address = ''] = /^([^:=]*)[:=](.*)$/.exec(line) ?? [];
    return [name, address];
  }),
);

const Networks = oneOf(
  'a list of networks, or a map with their aliases',
  mapFrom((name) => [name, null]),
  z.record(z.string(), z.object({ aliases: z.array(z.string()).default([]) }).nullable()),
);

const Build = oneOf(
  'a folder, or a map with context, dockerfile, target and args',
  z.string().transform((context) => ({ context, dockerfile: 'Dockerfile', target: undefined, args: {} })),
  z.object({
    context: z.string().default('.'),
    dockerfile: z.string().default('Dockerfile'),
    target: z.string().optional(),
    args: Variables.default({}),
  }),
);

const Paths = oneOf(
  'a path, or a list of paths',
  z.string().transform((path) => [path]),
  Texts,
);

const Service = z.object({
  image: z.string().optional(),
  build: Build.optional(),
  command: Words.nullish(),
  entrypoint: Words.nullish(),
  environment: Variables.default({}),
  env_file: EnvFiles.default([]),
  extra_hosts: ExtraHosts.default({}),
  secrets: z.array(ConfigUse).default([]),
  profiles: z.array(z.string()).default([]),
  links: z.array(z.string()).default([]),
  shm_size: Size.optional(),
  working_dir: z.string().optional(),
  user: Scalar.optional(),
  healthcheck: Healthcheck.optional(),
  depends_on: DependsOn.default({}),
  volumes: z.array(Volume).default([]),
  configs: z.array(ConfigUse).default([]),
  tmpfs: Paths.default([]),
  networks: Networks.default({ default: null }),
  hostname: z.string().optional(),
  cpus: Cpus.optional(),
  mem_limit: Size.optional(),
  deploy: z
    .object({
      resources: z
        .object({
          limits: z.object({ cpus: Cpus.optional(), memory: Size.optional() }).optional(),
          reservations: z
            .object({
              cpus: Cpus.optional(),
              memory: Size.optional(),
              devices: z.array(z.unknown()).optional(),
            })
            .optional(),
        })
        .optional(),
    })
    .optional(),
  ports: z.array(z.unknown()).optional(),
  container_name: z.unknown().optional(),
});

const Content = z.object({ content: z.string().optional(), file: z.string().optional() });

export const ComposeFile = z.object({
  name: z.unknown().optional(),
  version: z.unknown().optional(),
  services: z.record(z.string(), Service),
  volumes: z.record(z.string(), z.unknown()).nullish(),
  networks: z.record(z.string(), z.unknown()).nullish(),
  configs: z.record(z.string(), Content).nullish(),
  secrets: z.record(z.string(), Content).nullish(),
});

export type ComposeFile = z.output<typeof ComposeFile>;
export type ServiceTable = z.output<typeof Service>;

/** Stands for the name that the format's own program gives the image of the main container. */
export const mainImage = 'offsite:main-image';

/** `$$`, `$NAME`, `${NAME}`, or `${NAME` with an operator, whose text follows up to the closing brace. */
const reference = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(:?[-?+])?)/g;

interface Interpolation {
  variables: Readonly<Record<string, string>>;
  /** Called for a variable without a value and without a default. */
  onUnset(name: string, path: Path): void;
}

/**
 * A value of a compose file in which the variables in all texts have their values, as Compose does it. Keys
 * stay as they are. Throws an `input` error if the texts become too long.
 */
export function interpolated(value: unknown, { variables, onUnset }: Interpolation): unknown {
  let characters = 0;
  const each = (inner: unknown, path: Path): unknown => {
    if (typeof inner === 'string') {
      const text = inText(inner, variables, (name) => onUnset(name, path));
      characters += text.length;
      if (characters <= yamlFiles.bytes.expanded) return text;
      throw inputError('BAD_FILE', `${printPath(path)}: its variables stand for too much text`);
    }
    if (Array.isArray(inner)) return inner.map((element, index) => each(element, [...path, index]));
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(
      Object.entries(inner).map(([key, member]) => [key, each(member, [...path, key])]),
    );
  };
  return each(value, []);
}

function inText(
  text: string,
  variables: Readonly<Record<string, string>>,
  onUnset: (name: string) => void,
): string {
  let result = '';
  let at = 0;
  reference.lastIndex = 0;
  for (let match = nextReference(text, at); match; match = nextReference(text, at)) {
    const [whole, dollar, plain, braced, operator] = match;
    result += text.slice(at, match.index);
    at = match.index + whole.length;
    if (dollar !== undefined) {
      result += '$';
      continue;
    }
    const name = plain ?? braced ?? '';
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    let operand = '';
    if (braced !== undefined) {
      const end = closingBrace(text, at);
      operand = text.slice(at, end);
      at = end + 1;
    }
    const isGiven = value !== undefined && !(value === '' && operator?.startsWith(':'));
    if (operator?.endsWith('+')) result += isGiven ? inText(operand, variables, onUnset) : '';
    else if (isGiven) result += value;
    else if (operator?.endsWith('-')) result += inText(operand, variables, onUnset);
    else onUnset(name);
  }
  return result + text.slice(at);
}

function nextReference(text: string, from: number): RegExpExecArray | null {
  reference.lastIndex = from;
  return reference.exec(text);
}

/** The position at which the brace that is open at `from` is closed, or the end of the text. */
function closingBrace(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    if (text.startsWith('${', at)) depth += 1;
    else if (text[at] === '}' && --depth === 0) return at;
  }
  return text.length;
}
