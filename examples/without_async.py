"""For scripts without an event loop."""

from handrail import Agent


def main() -> None:
    agent = Agent()
    print(agent.ask_sync("Say hello.").text)
    print(agent.ask_sync("And goodbye.").text)


if __name__ == "__main__":
    main()
