import { rootCertificates } from 'node:tls';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { OutputCapture } from '../../base/output-capture.ts';
import { buildContexts } from '../../bounds/suite.ts';
import type { ImageBuilder } from '../../engine/build/find-builder.ts';
import { withinReserve } from '../../engine/container/disk-space.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Image } from '../../engine/port/images.ts';
import type { EnvironmentStep, UsedImage } from '../../record/environment.ts';
import { rewritten, secretMount, usedImages } from '../../suite/dockerfile.ts';
import { namedFrontend, plainDockerfile, remoteAdds, unmetNeeds } from '../../suite/dockerfile-features.ts';
import type { PlannedBuild } from '../../suite/environment.ts';
import { unchangedContext } from '../../suite/load-environment.ts';
import { taskFailure } from '../blame.ts';
import { trustVariables } from '../prepare/environment.ts';
import { relayImage, relayImageOf } from '../prepare/model-port.ts';
import { requireImage, usedImage } from '../prepare/obtain-image.ts';
import type { TrialSpec } from '../spec.ts';
import { type ImageWork, noteFailure, type Prepared, sharedStep } from './image-parts.ts';

/** Arguments that every builder knows, and keeps neither in an image nor in its history. */
const proxyNames = ['http_proxy', 'https_proxy', 'ftp_proxy', 'no_proxy', 'all_proxy'];

export interface BuiltImage {
  step: EnvironmentStep & { image: string };
  /** The images that the Dockerfile names. */
  bases: UsedImage[];
}

/**
 * The image of the Dockerfile that a case names, built once on this engine for each content of it. Undefined
 * if the case has none. Throws a `TrialFailure` of kind `task` if it cannot be built.
 */
export async function builtImage(work: ImageWork, spec: TrialSpec): Promise<BuiltImage | undefined> {
  const { build } = spec.environment;
  if (!build) return undefined;
  const { engine, signal } = work;
  const bases = await baseImages(work, build);
  if (spec.sandbox.remoteAdd !== 'allow') refuseRemoteAdds(build, bases);
  const shared = {
    phase: 'build' as const,
    description: `build of ${build.name}`,
    key: keyOf(build, bases, engine),
  };
  const { made: image, step } = await sharedStep(work, shared, async ({ run, ...request }) => {
    const lockImageId = await lockImage(engine, bases, signal);
    const make = (image: BuildRun['image']) =>
      run(async () => runBuild(await engine.builder(signal), { work, spec, build, image }));
    const parentImageId = bases.at(-1)?.image.id;
    return (await engine.image({ ...request, lockImageId, parentImageId, make }, signal)).imageId;
  });
  return { step: { ...step, image }, bases: bases.map(({ name, image }) => usedImage(name, image)) };
}

interface BaseImage {
  name: string;
  image: Image;
}

/** The images that the Dockerfile names, or those that the configuration uses instead. */
async function baseImages(work: ImageWork, build: PlannedBuild): Promise<BaseImage[]> {
  return Promise.all(
    usedImages(build.dockerfile, build.args).map(async ({ name, line }) => {
      const used = build.images[name] ?? name;
      const named = { name, used, place: `${build.file}:${line}`, phase: 'build' as const };
      try {
        return { name: used, image: await requireImage(work, named, work.signal) };
      } catch (error) {
        // Reported once, however many Dockerfiles begin with it.
        noteFailure(work, { key: `missing ${name}`, what: `image ${name}`, image: name }, error);
        throw error;
      }
    }),
  );
}

/** Refuses a Dockerfile that lets the engine fetch addresses, also through an image that it builds on. */
function refuseRemoteAdds({ file, dockerfile }: PlannedBuild, bases: readonly BaseImage[]): void {
  const [found] = remoteAdds(
    dockerfile,
    bases.flatMap(({ image }) => image.triggers),
  );
  if (!found) return;
  throw taskFailure(
    'build',
    `${file}:${found.line}: ${found.message}, which the engine would fetch from its own machine's network, where also ` +
      'what listens on localhost answers. Use COPY, or RUN with curl or git; or allow it: `remoteAdd: allow` in ' +
      'the sandbox in offsite.yaml.',
  );
}

/** All that goes into the image. */
function keyOf(build: PlannedBuild, bases: readonly BaseImage[], { capabilities }: Engine): string {
  const { dockerfile, target, args, context } = build;
  const ids = bases.map(({ name, image }) => [name, image.id]);
  return JSON.stringify({
    dockerfile,
    target,
    args,
    context: context.hash,
    bases: ids,
    arch: capabilities.arch,
  });
}

async function lockImage(engine: Engine, [base]: BaseImage[], signal: AbortSignal): Promise<string> {
  return (await engine.findImage(relayImage, signal))?.id ?? base?.image.id ?? relayImageOf(engine, signal);
}

interface BuildRun {
  work: ImageWork;
  spec: TrialSpec;
  build: PlannedBuild;
  image: { name: string; labels: Readonly<Record<string, string>> };
}

/** Builds the image, and resolves with what the build printed. */
async function runBuild(
  builder: ImageBuilder,
  { work: { engine, extraCertificates, passed, signal }, spec, build, image }: BuildRun,
): Promise<Prepared> {
  const members = unchangedContext(build);
  if (!members) {
    throw taskFailure(
      'build',
      `${build.place}: the build context has changed since the batch was planned; run the suite again`,
    );
  }
  const hasSecrets = builder.kind === 'buildkit' && extraCertificates !== undefined;
  const secret = hasSecrets
    ? { id: 'offsite-certificates', content: bundleWith(extraCertificates), variables: trustVariables }
    : undefined;
  const frontends = await frontendsOn(engine, { build, sandbox: spec.sandbox }, signal);
  // It names a frontend as a `# syntax=` line does, and the engine would pull it.
  const { [frontendArg]: pulled, ...args } = build.args;
  const hasNamed = builder.kind === 'buildkit' && frontends.size > 0;
  const frontend = hasNamed ? 'current' : builder.frontend;
  const plain = plainDockerfile(build.dockerfile, frontend);
  const [unmet] = unmetNeeds(plain.text, frontend);
  if (unmet) throw taskFailure('build', `${build.file}:${unmet.line}: ${unmet.message}`);
  const { text, removedFrontends, lineOf } = rewritten(plain.text, {
    args,
    imageFor: (name) => build.images[name] ?? name,
    hasFrontend: (name) => builder.kind === 'buildkit' && frontends.has(name),
    secret,
  });
  const output = new OutputCapture(buildContexts.bytes.output);
  const say = (line: string) => output.push(Buffer.from(line));
  for (const name of removedFrontends)
    say(
      `note: ${name} of the syntax line is not Docker's, or the engine does not have it; its own frontend is used\n`,
    );
  if (pulled !== undefined) say(`note: the argument ${frontendArg} is left out\n`);
  for (const note of plain.notes) say(`note: ${note}\n`);
  if (extraCertificates && !hasSecrets)
    say(`note: RUN steps do not trust the extra certificates of this host: ${noSecrets}\n`);
  const isProxy = ([name]: [string, string]) => proxyNames.includes(name.toLowerCase());
  const { clock } = engine.port;
  const startedAt = clock.now();
  const printed = () => {
    const { text: printedText } = output.result();
    // Builders print steps of the rewritten Dockerfile.
    return withLines(secret ? printedText.replaceAll(secretMount(secret.id), '') : printedText, lineOf);
  };
  try {
    // No limit of a sandbox holds for the steps of a Dockerfile.
    await withinReserve(engine, signal, (building) =>
      builder.build({
        ...image,
        dockerfile: text,
        target: build.target,
        args,
        secret,
        signal: building,
        proxies: Object.fromEntries(Object.entries(passed).filter(isProxy)),
        context: { ...build.context, members },
        timeoutMs: spec.sandbox.timeouts.build,
        onOutput: say,
      }),
    );
  } catch (error) {
    signal.throwIfAborted();
    const isAuthors = error instanceof OffsiteError && error.kind === 'input';
    if (!isAuthors) throw error;
    throw taskFailure('build', `${build.file}: ${messageOf(error)}`, printed());
  }
  return { startedAt, durationMs: clock.now() - startedAt, output: printed() };
}

const noSecrets = 'the classic builder has no secrets. Install docker buildx for BuildKit';

/** The usual certificates with those of the host. */
function bundleWith(extraCertificates: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${rootCertificates.join('\n')}\n`), extraCertificates]);
}

const frontendArg = 'BUILDKIT_SYNTAX';
const ofDocker = /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::|@|$)/;

/**
 * The frontends of `# syntax=` lines that the engine has. Others than Docker's own, and those that the owner
 * named, could fetch any address, as ADD does.
 */
async function frontendsOn(
  engine: Engine,
  { build, sandbox }: { build: PlannedBuild; sandbox: TrialSpec['sandbox'] },
  signal: AbortSignal,
): Promise<Set<string>> {
  const named = namedFrontend(build.dockerfile) ?? '';
  const mapped = build.images[named];
  const isKnown = ofDocker.test(named) || sandbox.remoteAdd === 'allow';
  const name = mapped ?? (isKnown ? named : undefined);
  return new Set(name !== undefined && (await engine.findImage(name, signal)) ? [name] : []);
}

/** An output with the author's line numbers: builders print those of the rewritten Dockerfile. */
function withLines(output: string, lineOf: (line: number) => number): string {
  return output
    .replace(
      /(Dockerfile:|parse error (?:on )?line )(\d+)/g,
      (_, before, line) => `${before}${lineOf(Number(line))}`,
    )
    .replace(/^(\s*)(\d+)( \| )/gm, (_, before, line, after) => `${before}${lineOf(Number(line))}${after}`);
}
