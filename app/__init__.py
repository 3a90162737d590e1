"""The Streamlit app: pages that ask ``queuecast.answers`` and show what it says. Started by ``queuecast serve``."""
