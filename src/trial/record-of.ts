import { pathLists } from '../bounds/sandbox.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';
import { profileVersion } from '../suite/planned-variant.ts';
import { definitionDigest, fingerprintOf } from './fingerprint.ts';
import { mappedImages } from './image/mapped-images.ts';
import { hostsOf } from './models.ts';
import type { Found } from './phases/phase.ts';
import type { TrialSpec } from './spec.ts';

/**
 * The record of what was found, in a trial or in a later grading of it.
 *
 * @param facts.account of the models that were asked
 */
export function recordOf(
  spec: TrialSpec,
  { carry, packed, protectedChanged, verifyTampered, failedAsk, ...found }: Found,
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
