import type { CaseTests } from './case-tests.ts';
import type { CaseEnvironment, NamedImage, PlannedBuild } from './environment.ts';
import type { PlannedCase, SuitePlan } from './plan.ts';

/**
 * What an environment consists of, for comparisons. Where its files and its repository are, and the lines
 * that name them, are left out: they differ between two clones of the same suite.
 */
export function environmentContent({ services, source, ...environment }: CaseEnvironment) {
  return {
    ...withoutPlaces(environment),
    source: source && { commit: source.rebuilt ?? source.commit, history: source.history },
    services: services?.map((service) => ({ ...withoutPlaces(service), place: undefined })),
  };
}

/** What tests consist of, in the same way. */
export function testsContent(tests: CaseTests): unknown {
  const own = tests.fresh?.environment;
  const fresh = tests.fresh && { ...tests.fresh, environment: own && environmentContent(own) };
  return { ...tests, fresh };
}

/** Where tests run, in the same way. */
export function testsInContent<Tests extends WithEnvironment>(tests: Tests): unknown {
  return { ...tests, environment: environmentContent(tests.environment) };
}

interface WithEnvironment {
  environment: CaseEnvironment;
}

/** What steps consist of, in the same way: as they are planned, or as a trial has them. */
export function stepsContent({
  list,
  ...steps
}: {
  list: readonly { tests: CaseTests; testsIn?: WithEnvironment | undefined }[];
}): unknown {
  return {
    ...steps,
    list: list.map(({ tests, testsIn, ...step }) => ({
      ...step,
      tests: testsContent(tests),
      testsIn: testsIn && testsInContent(testsIn),
    })),
  };
}

function withoutPlaces<Parts extends { image?: NamedImage | undefined; build?: PlannedBuild | undefined }>({
  image,
  build,
  ...rest
}: Parts) {
  return {
    ...rest,
    image: image && { ...image, place: undefined },
    build: build && {
      ...build,
      name: undefined,
      file: undefined,
      place: undefined,
      context: { ...build.context, folder: undefined },
    },
  };
}

/** The builds of all cases, of their services, and of what their tests run in. */
export function buildsOf({ cases }: Pick<SuitePlan, 'cases'>): PlannedBuild[] {
  return cases.flatMap((planned) =>
    environmentsOf(planned).flatMap(({ build, services = [] }) =>
      [build, ...services.map((service) => service.build)].filter((one) => one !== undefined),
    ),
  );
}

/** The environments of a case: its own, and those that its tests run in. */
export function environmentsOf({ local: { environment, tests, steps } }: PlannedCase): CaseEnvironment[] {
  const graded = [tests, ...(steps?.list ?? []).map((step) => step.tests)];
  return [environment, ...graded.flatMap((one) => one?.fresh?.environment ?? [])];
}
