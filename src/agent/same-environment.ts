import type { CaseEnvironment, NamedImage, PlannedBuild } from '../suite/environment.ts';

/**
 * Whether two environments are the same for a trial. Where their files are, and the lines that name them, does
 * not matter. One of them may come from a stored plan, which has no members without a value.
 */
export function isSameEnvironment(one: CaseEnvironment, other: CaseEnvironment): boolean {
  return content(one) === content(other);
}

function content({ services, ...environment }: CaseEnvironment): string {
  return JSON.stringify({
    ...withoutPlaces(environment),
    services: services?.map((service) => ({ ...withoutPlaces(service), place: undefined })),
  });
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
      ...{ name: undefined, file: undefined, place: undefined },
      context: { ...build.context, folder: undefined },
    },
  };
}
