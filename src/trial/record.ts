import { createHash } from 'node:crypto';
import { canonicalJson } from '../base/canonical-json.ts';
import { pathLists } from '../bounds/sandbox.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import type { Fingerprint } from '../record/fingerprint.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';
import { usedImages } from '../suite/dockerfile.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import { environmentContent, stepsContent, testsContent, testsInContent } from '../suite/plan.ts';
import { profileVersion } from '../suite/planned-variant.ts';
import type { OpenRecord } from './phase.ts';
import type { TrialServices } from './prepare/trial-services.ts';
import { hostsOf } from './run/models.ts';
import type { TrialSpec } from './spec.ts';

/**
 * The record of what was found, in a trial or in a later grading of it.
 *
 * @param facts.account of the models that were asked
 */
export function recordOf(
  spec: TrialSpec,
  { carry, packed, protectedChanged, verifyTampered, failedAsk, ...found }: OpenRecord,
  {
    account,
    ...facts
  }: { account: ModelAccount | undefined } & Pick<TrialRecord, 'startedAt' | 'finishedAt' | 'phases'>,
): TrialRecord {
  const mapped = mappedImages(
    spec.environment,
    ...[spec, ...(spec.steps?.list ?? [])].map(({ testsIn }) => testsIn?.environment),
  );
  return {
    subject: subjectOf(spec),
    fingerprint: fingerprintOf(spec, { ...found, models: account }),
    definition: definitionDigest(spec, found),
    ...(mapped.length > 0 && { mappedImages: mapped }),
    verdict: 'void',
    ...found,
    version: recordVersion,
    ...keptPaths(found),
    ...facts,
    models: account,
    // Model traffic outside the gateway can only be ruled out if the sandbox has no other way out.
    modelUnmeasured: spec.sandbox.network === 'open',
  };
}

/** What was tried, for people who look at the result later. */
export function subjectOf(trial: TrialSpec) {
  const { steps, caseName, ordinal, model, harness, profile, sandbox, ...spec } = trial;
  const { image, network } = sandbox;
  const { verify } = spec;
  const hosts = hostsOf(sandbox);
  const ofTests = [...new Set((steps?.list ?? [trial]).flatMap(({ testsHosts }) => testsHosts ?? []))];
  const prompt = steps ? steps.list.map((step) => step.prompt).join('\n\n') : spec.prompt;
  return {
    caseName,
    ordinal,
    model,
    harness,
    image,
    network,
    prompt,
    verify,
    profile: profile.name,
    profileVersion: profileVersion(profile),
    ...(profile.tellDeadline && { tellDeadline: true as const }),
    ...(hosts.length > 0 && { hosts }),
    ...(ofTests.length > 0 && { testsHosts: ofTests }),
  };
}

/**
 * The lists of paths as a record keeps them. If some paths are left out, the counts say how many there were.
 * Grading sees all paths, but an agent can make more of them than a disk should keep.
 */
export function keptPaths({
  filesChanged,
  artifactsOmitted,
}: Partial<TrialRecord>): Pick<
  TrialRecord,
  'filesChanged' | 'filesChangedCount' | 'artifactsOmitted' | 'artifactsOmittedCount'
> {
  return {
    filesChanged: filesChanged && firstOf(filesChanged),
    filesChangedCount: filesChanged?.length,
    artifactsOmitted: artifactsOmitted && firstOf(artifactsOmitted),
    artifactsOmittedCount: artifactsOmitted?.length,
  };
}

function firstOf(paths: readonly string[]): string[] {
  let room = pathLists.bytes.kept;
  const tooMany = paths.slice(0, pathLists.count.kept).findIndex((path) => {
    room -= path.length;
    return room < 0;
  });
  return paths.slice(0, tooMany === -1 ? pathLists.count.kept : tooMany);
}

/**
 * The fingerprint of a trial, from what it was asked to do and what was found while it ran. Where files are,
 * and images without a digest of a registry, are no part of it: they differ between two machines.
 */
export function fingerprintOf(
  spec: TrialSpec,
  { harnessVersion, images, models }: Pick<TrialRecord, 'harnessVersion' | 'images' | 'models'>,
): Fingerprint {
  return {
    ...hashesOf(partsOf(spec, images)),
    ...behindNames(models?.usage),
    model: spec.model,
    harness: harnessVersion === undefined ? spec.harness : `${spec.harness} ${harnessVersion}`,
    profile: profileVersion(spec.profile) ?? 'none',
  };
}

/** The parts of a fingerprint that are known before the trial runs: what it asks and how it is graded. */
export function plannedFingerprint(spec: TrialSpec): Fingerprint {
  return hashesOf(partsOf(spec));
}

/**
 * The sha256 of all parts together. The hashes of a fingerprint are short, for people, so that an owner could
 * look for two validators with the same one.
 */
export function definitionDigest(spec: TrialSpec, { images }: Pick<TrialRecord, 'images'>): string {
  const { model, harness, profile } = spec;
  const all = { ...partsOf(spec, images), model, harness, profile: profileVersion(profile) };
  return createHash('sha256').update(canonicalJson(all)).digest('hex');
}

function partsOf(spec: TrialSpec, images: TrialRecord['images'] = []): Record<string, unknown> {
  const { environment, tests, testsIn, steps, validator, sandbox } = spec;
  const { source, ...content } = environmentContent(environment);
  const digests = images.flatMap(({ digest }) => digest ?? []).toSorted();
  const { name: _, ...limits } = sandbox;
  return {
    prompt: spec.prompt,
    variables: [spec.variables, spec.gradingVariables ?? null],
    source,
    prepare: spec.prepare,
    environment: content,
    images: digests.length > 0 ? digests : undefined,
    verify: spec.verify && [spec.verify, spec.verifyPlace],
    validator: validator && { ...validator, manifest: validator.manifest.map(({ name }) => name) },
    tests: tests && [testsContent(tests), testsIn && testsInContent(testsIn), spec.testsHosts ?? null],
    steps: steps && stepsContent(steps),
    user: spec.user,
    judges: spec.judges.length > 0 ? spec.judges : undefined,
    artifacts: [spec.artifacts, spec.artifactsExcept ?? null],
    protected: spec.protected,
    agent: spec.agent,
    sandbox: limits,
  };
}

/** What stood behind the names of the models that were asked. */
function behindNames(usage: NonNullable<TrialRecord['models']>['usage'] = []): Fingerprint {
  const parts = usage.flatMap(({ role, model, behind }): [string, string | undefined][] => {
    if (!behind) return [];
    if (role !== 'agent') return [[`${role} ${model}`, hashOf(behind)]];
    return [
      ['modelId', behind.id],
      ['modelAddress', behind.at],
    ];
  });
  return Object.fromEntries(parts.flatMap(([part, value]) => (value === undefined ? [] : [[part, value]])));
}

function hashesOf(parts: Record<string, unknown>): Fingerprint {
  const known = Object.entries(parts).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known.map(([part, value]) => [part, hashOf(value)]));
}

/** 16 hexadecimal digits. */
function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 16);
}

/** What a trial found, with what became of its services. Call this before they are removed. */
export async function withServices(
  found: OpenRecord,
  services: TrialServices | undefined,
  blobs: BlobStore,
): Promise<OpenRecord> {
  if (!services) return found;
  const { services: records, artifacts } = await services.found(blobs);
  return { ...found, services: records, artifacts: [...(found.artifacts ?? []), ...artifacts] };
}

interface MappedImage {
  name: string;
  usedInstead: string;
}

/** The images that the configuration uses in place of those that a case or its Dockerfile names. */
export function mappedImages(...environments: (CaseEnvironment | undefined)[]): MappedImage[] {
  const all = environments.flatMap((environment) =>
    environment ? [environment, ...(environment.services ?? [])] : [],
  );
  return [...new Map(all.flatMap(mappedIn).map((image) => [image.name, image])).values()];
}

function mappedIn({ image, build }: Pick<CaseEnvironment, 'image' | 'build'>): MappedImage[] {
  if (image?.mappedTo !== undefined) return [{ name: image.name, usedInstead: image.mappedTo }];
  if (!build) return [];
  const names = new Set(usedImages(build.dockerfile, build.args).map(({ name }) => name));
  return [...names].flatMap((name) => {
    const usedInstead = build.images[name];
    return usedInstead === undefined ? [] : [{ name, usedInstead }];
  });
}
