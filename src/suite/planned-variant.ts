import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { inputError, messageOf } from '../base/offsite-error.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import { nearest, orNearest } from '../text/nearest.ts';
import type { Config } from './config-file.ts';
import { BadFile, printFileIssue } from './file-issues.ts';
import { type McpServer, type McpTransport, transportOf } from './mcp-server.ts';
import type { ModelConfig, Wire } from './model-config.ts';
import { type PlannedVariant, type Profile, profileOf } from './plan.ts';
import { FileReader } from './read-file.ts';
import { SandboxConfig } from './sandbox-config.ts';
import type { StreamOffer } from './stream-line.ts';
import type { VariantSource } from './suite-file.ts';
import { checkLineEnds, type Text } from './text-source.ts';

/** The properties of a harness that decide whether a variant can use it. */
export interface HarnessOffer {
  name: string;
  wires: readonly Wire[] | 'any';
  continues: boolean;
  mcp: readonly McpTransport[];
  runsScript?: boolean;
  streams?: readonly StreamOffer[];
  limits: readonly string[];
}

interface VariantContext {
  config: Config;
  harnesses: readonly HarnessOffer[];
  /** Whether at least one case has a simulated user. */
  meetsUser: boolean;
  /** Keys that no file of a profile may contain. */
  keys?: KnownKeys | undefined;
}

/**
 * A variant with everything that its names refer to. If that is not possible, reports the problem and returns
 * undefined.
 */
export function plannedVariant(
  variant: VariantSource,
  { config, harnesses, meetsUser, keys }: VariantContext,
  reportIssue: (key: string, message: string) => void,
): PlannedVariant | undefined {
  let refused = false;
  const report = (key: string, message: string) => {
    refused = true;
    reportIssue(key, message);
  };
  const { harness, sandbox, model, userModel } = variant;
  const offer = harnesses.find(({ name }) => name === harness);
  const names = harnesses.map(({ name }) => name);
  if (!offer) report('harness', `"${harness}" is not a harness${orNearest(harness, names)}`);
  const sandboxConfig = sandboxOf(config, sandbox);
  if (!sandboxConfig) {
    const sandboxes = [...new Set(['local', ...Object.keys(config.sandboxes)])];
    report('sandbox', notIn(config, sandbox, 'a sandbox', sandboxes));
  }
  if (variant.profile !== undefined && !config.profiles[variant.profile])
    report('profile', notIn(config, variant.profile, 'a profile', Object.keys(config.profiles)));
  if (userModel !== undefined && !findModel(userModel, config))
    report('userModel', unknownModel(userModel, config));
  if (!offer || !sandboxConfig || refused) return undefined;
  const modelConfig = findModel(model, config);
  const isCut = sandboxConfig.network === 'none';
  if (!modelConfig && needsModel(model, offer)) {
    const remedy = asksModel(offer) ? '' : '; write `model: none` for a program that asks no model';
    report('model', `${unknownModel(model, config)}${remedy}`);
  } else if (isCut && asksModel(offer))
    report('model', `the ${harness} harness needs its model, which it cannot reach with network none`);
  if (meetsUser && !offer.continues)
    report('harness', `the ${harness} harness takes one message only, so no simulated user can talk to it`);
  const profile = loadProfile(variant.profile, config, keys);
  for (const problem of profileProblems(profile, offer))
    report(variant.profile === undefined ? 'harness' : 'profile', problem);
  const noTraffic =
    model === noModel && !modelConfig
      ? 'the variant has no model'
      : isCut
        ? 'the sandbox has network none'
        : undefined;
  for (const [key, message] of streamProblems(profile, offer, noTraffic)) {
    const issue = config.issue?.(['profiles', variant.profile ?? '', key], message);
    report('profile', issue ? printFileIssue(issue) : message);
  }
  return {
    name: variant.name ?? [model, harness, variant.profile].filter((part) => part !== undefined).join('/'),
    model,
    modelConfig,
    harness,
    userModel,
    profile,
    sandbox: { name: sandbox, ...sandboxConfig },
    credentials: {
      harnessConnectionId: config.connections.harness[harness] ?? harness,
      sandboxConnectionId: config.connections.sandbox[sandbox] ?? sandbox,
    },
  };
}

/** The model of a variant that has none. */
export const noModel = 'none';

/** Whether the configuration must have a variant's model. */
export function needsModel(model: string, offer: Pick<HarnessOffer, 'wires'>): boolean {
  return model !== noModel || asksModel(offer);
}

function asksModel({ wires }: Pick<HarnessOffer, 'wires'>): boolean {
  return wires === 'any' || wires.length > 0;
}

/** A sandbox of the configuration by its name; `local` is there without a configuration. */
export function sandboxOf({ sandboxes }: Config, name: string): SandboxConfig | undefined {
  return sandboxes[name] ?? (name === 'local' ? SandboxConfig.parse({}) : undefined);
}

/** Finds a model of the configuration by its name or one of its aliases. */
export function findModel(model: string, { models }: Config): ModelConfig | undefined {
  return models[model] ?? Object.values(models).find(({ aliases }) => aliases.includes(model));
}

export function unknownModel(model: string, config: Config): string {
  const names = Object.keys(config.models);
  const isStrange = config.file !== undefined && nearest(model, names) === undefined;
  const add = isStrange ? '; `offsite models add` adds one' : '';
  return `${notIn(config, model, 'a model', names)}${add}`;
}

/** What is wrong in `daemon.profiles`, whose names are needed only when a run is found. */
export function wrongDaemonProfiles(
  config: Config,
  harnesses: readonly Pick<HarnessOffer, 'name'>[],
): string[] {
  const names = harnesses.map(({ name }) => name);
  const profiles = Object.keys(config.profiles);
  return Object.entries(config.daemon.profiles).flatMap(([harness, profile]) => [
    ...(names.includes(harness) ? [] : [`"${harness}" is not a harness${orNearest(harness, names)}`]),
    ...(profiles.includes(profile) ? [] : [notIn(config, profile, 'a profile', profiles)]),
  ]);
}

/** Said of a name that the configuration does not have, and where that was looked for if there is none. */
function notIn(
  { file, searched = [] }: Config,
  name: string,
  what: string,
  names: readonly string[],
): string {
  if (file !== undefined) return `"${name}" is not ${what} of ${file}${orNearest(name, names)}`;
  const folders = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(searched);
  return `"${name}" is not ${what}: there is no offsite.yaml in ${folders}; name it with --config FILE`;
}

/** Why a harness cannot use a profile. */
function* profileProblems({ run, maxTurns, mcpServers }: Profile, offer: HarnessOffer): Generator<string> {
  const { name, limits, runsScript = false } = offer;
  if (runsScript && run === undefined) yield `the ${name} harness needs a profile with a run script`;
  if (!runsScript && run !== undefined)
    yield `the profile has a run script, which the ${name} harness does not use`;
  if (maxTurns !== undefined && !limits.includes('turns'))
    yield `the profile has maxTurns, which the ${name} harness does not support`;
  const servers = mcpObstacle(mcpServers, offer);
  if (servers !== undefined) yield `the profile has mcpServers: ${servers}`;
}

/**
 * The problems with what a profile says about its stream and its commands, by its keys.
 *
 * @param noTraffic why there is no model traffic to read; undefined if there is
 */
function* streamProblems(
  { stream, trajectory }: Profile,
  { name: harness, streams = [] }: HarnessOffer,
  noTraffic: string | undefined,
): Generator<['stream' | 'trajectory', string]> {
  if (streams.length === 0) {
    const message = `the ${harness} harness reports its commands in its own way; only command uses this`;
    if (stream !== undefined) yield ['stream', message];
    if (trajectory !== undefined) yield ['trajectory', message];
    return;
  }
  const offer = streams.find(({ name }) => name === stream);
  if (stream !== undefined && !offer) {
    const names = streams.map(({ name }) => name).join(', ');
    yield ['stream', `${JSON.stringify(stream)} is not a stream that Offsite reads; known are ${names}`];
  }
  if (trajectory !== undefined && offer?.reportsCommands)
    yield ['trajectory', `the stream ${stream} reports the commands; remove stream or trajectory`];
  if (trajectory === 'wire' && noTraffic !== undefined)
    yield ['trajectory', `there is no model traffic to read commands from: ${noTraffic}`];
}

/** Why a harness cannot use tool servers; undefined if it can. */
export function mcpObstacle(
  servers: Readonly<Record<string, McpServer>>,
  { name, mcp }: Pick<HarnessOffer, 'name' | 'mcp'>,
): string | undefined {
  const [server, used] = Object.entries(servers).find(([, one]) => !mcp.includes(transportOf(one))) ?? [];
  if (server === undefined || used === undefined) return undefined;
  if (mcp.length === 0) return `the ${name} harness does not support tool servers, such as ${server}`;
  return `the ${name} harness cannot speak ${transportOf(used)} to the tool server ${server}`;
}

/**
 * Loads a profile of the configuration and reads its scripts and files. They may be anywhere, because the
 * author of the configuration owns the machine. Throws {@link BadFile} if one cannot be read.
 *
 * @param keys keys that its files may not contain
 */
function loadProfile(name: string | undefined, config: Config, keys?: KnownKeys): Profile {
  const source = name === undefined ? undefined : config.profiles[name];
  if (!source || config.file === undefined) return profileOf({ name });
  const folder = dirname(config.file);
  const reader = new FileReader({ reach: 'anywhere', keys });
  const reading = <Result>(part: string[], read: () => Result): Result => {
    try {
      return read();
    } catch (error) {
      throw unreadable(config, ['profiles', name ?? '', ...part], error);
    }
  };
  const text = (part: Text | undefined, key: string) =>
    reading([key], () => {
      const script = typeof part === 'object' ? reader.text(resolve(folder, part.file)) : part;
      checkLineEnds(script ?? '');
      return script;
    });
  return {
    name,
    install: text(source.install, 'install'),
    run: text(source.run, 'run'),
    stream: source.stream,
    trajectory: source.trajectory,
    version: source.version,
    args: source.args ?? [],
    env: source.env ?? {},
    files: [
      ...Object.entries(source.files ?? {}).map(([path, file]) => ({
        path,
        content: reading(['files', path], () => reader.file(resolve(folder, file)).content),
      })),
      ...Object.entries(source.folders ?? {}).flatMap(([target, beside]) =>
        reading(['folders', target], () => reader.folder(resolve(folder, beside), target)).map(
          ({ path, content, isExecutable }) => ({ path, content, mode: isExecutable ? 0o755 : 0o644 }),
        ),
      ),
    ],
    mcpServers: source.mcpServers ?? {},
    maxTurns: source.maxTurns,
    ...(source.tellDeadline && { tellDeadline: true }),
  };
}

function unreadable({ issue, file }: Config, path: string[], error: unknown): unknown {
  if (error instanceof BadFile) return error;
  const message = messageOf(error);
  if (issue) return new BadFile([issue(path, message)]);
  return inputError('FILE_UNREADABLE', `${file}: ${path.join('.')}: ${message}`, { cause: error });
}

/** Versions that are known, because the files of a profile may be large. */
const known = new WeakMap<Profile, string>();

/**
 * A version of a profile: 12 hexadecimal digits of a hash of all that it holds. It does not depend on the
 * profile's name. Undefined if the variant names no profile.
 */
export function profileVersion(profile: Profile): string | undefined {
  if (profile.name === undefined) return undefined;
  const version = known.get(profile) ?? hashOf(profile);
  known.set(profile, version);
  return version;
}

function hashOf(profile: Profile): string {
  const { install, run, version, args, env, files, mcpServers, maxTurns, stream, trajectory } = profile;
  const hash = createHash('sha256');
  const paths = files.map(({ path, mode, content }) => [path, mode, content.byteLength]);
  hash.update(JSON.stringify([install, run, version, args, env, mcpServers, maxTurns, paths]));
  // Not in the list, so that profiles without these keep the versions that they had.
  if (stream !== undefined || trajectory !== undefined) hash.update(JSON.stringify({ stream, trajectory }));
  if (profile.tellDeadline) hash.update('tellDeadline');
  for (const { content } of files) hash.update(content);
  return hash.digest('hex').slice(0, 12);
}
